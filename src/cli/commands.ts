/** All commands, in the order of the help. */
import type { Command } from 'commander'
import { defineRun } from './run.ts'

export const COMMANDS: readonly ((program: Command) => void)[] = [defineRun]
