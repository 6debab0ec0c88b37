"""Operators on images: resampling, grids, regions of interest and boxes."""
