"""`annotruth.crowdkit.utils` under the name that crowd-kit gives it."""

from annotruth.crowdkit.utils import *
