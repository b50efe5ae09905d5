"""`annotruth.crowdkit` under the name that crowd-kit gives it."""

from annotruth.crowdkit import *
