#!/usr/bin/env bash
# What the action does: install, run or merge, reports, annotations at the lines of specs; ends with the harness's exit code.
# `harness run` and `harness merge` write the summary of the job themselves. Inputs come as variables, so that none is read as code.
set -fuo pipefail  # -f: no input names files by a pattern
run="$(mktemp -d "${RUNNER_TEMP:?}/run-XXXXXX")/run"  # a job can use the action twice
lines() { while IFS= read -r line; do if [ -n "${line// /}" ]; then arguments+=("${@:2}" "$line"); fi; done <<<"$1"; }

python -m venv "$RUNNER_TEMP/conformance" || exit 5
bin="$RUNNER_TEMP/conformance/bin"
if [ -d "$RUNNER_TEMP/conformance/Scripts" ]; then bin="$RUNNER_TEMP/conformance/Scripts"; fi
"$bin/python" -m pip install -q --disable-pip-version-check "${REQUIREMENT:-$ACTION/../../..}" || exit 5
harness="$bin/harness"

if [ "$WINDOWS_RUNTIME" = true ] && [ -z "$MERGE" ]; then
  if [ -e /proc/sys/kernel/apparmor_restrict_unprivileged_userns ]; then
    sudo sysctl -q -w kernel.apparmor_restrict_unprivileged_userns=0  # Ubuntu 24.04 lets no program make a sandbox without it
  fi
  "$harness" setup || exit 5
fi

arguments=()
if [ -n "$MERGE" ]; then
  set +f
  "$harness" merge -o "$run" -- "$MERGE"/*/
  set -f
else
  lines "$QUERY" -k
  lines "$EXPECTATIONS" --expectations
  for target in $TARGETS; do arguments+=(-t "$target"); done
  if [ -n "$BASELINE" ]; then arguments+=(--baseline "$BASELINE"); fi
  if [ -n "$SHARD" ]; then arguments+=(--shard "$SHARD"); fi
  arguments+=(-o "$run" --)
  lines "$SPECS"
  "$harness" run "${arguments[@]}"
fi
code=$?

echo "exit-code=$code" >>"$GITHUB_OUTPUT"
if [ -f "$run/run.jsonl" ]; then
  echo "run=$run" >>"$GITHUB_OUTPUT"
  "$harness" report "$run" --format junit -o "$run/junit.xml"
  "$harness" annotate "$run"
fi
exit "$code"
