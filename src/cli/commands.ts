/** All commands, in the order of the help. */
import type { Command } from 'commander'
import { defineCheck } from './check.ts'
import { defineConfig } from './config.ts'
import { defineCrawl } from './crawl.ts'
import { defineDlq } from './dlq.ts'
import { defineDoctor } from './doctor.ts'
import { defineExplain } from './explain-command.ts'
import { defineExport } from './export.ts'
import { defineFetch } from './fetch.ts'
import { defineInit } from './init.ts'
import { defineList } from './list.ts'
import { defineMap } from './map.ts'
import { defineNew } from './new.ts'
import { defineRobots } from './robots.ts'
import { defineRun } from './run.ts'
import { defineShell } from './shell.ts'
import { defineStats } from './stats.ts'
import { defineTest } from './test.ts'
import { defineTry } from './try.ts'

export const COMMANDS: readonly ((program: Command) => void)[] = [
  defineRun,
  defineCrawl,
  defineTry,
  defineShell,
  defineFetch,
  defineMap,
  defineRobots,
  defineStats,
  defineDlq,
  defineExport,
  defineList,
  defineExplain,
  defineConfig,
  defineDoctor,
  defineTest,
  defineCheck,
  defineInit,
  defineNew,
]
