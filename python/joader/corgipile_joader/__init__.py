"""JOADER: training jobs on one machine share the work of reading and preparing data."""
