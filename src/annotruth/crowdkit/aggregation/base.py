"""`annotruth.crowdkit.base` under the name that crowd-kit gives it."""

from annotruth.crowdkit.base import *
