/** All commands, in the order of the help. */
import type { Command } from 'commander'
import { defineCrawl } from './crawl.ts'
import { defineFetch } from './fetch.ts'
import { defineMap } from './map.ts'
import { defineRobots } from './robots.ts'
import { defineRun } from './run.ts'
import { defineShell } from './shell.ts'
import { defineTry } from './try.ts'

export const COMMANDS: readonly ((program: Command) => void)[] = [
  defineRun,
  defineCrawl,
  defineTry,
  defineShell,
  defineFetch,
  defineMap,
  defineRobots,
]
