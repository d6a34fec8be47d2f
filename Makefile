all: help
