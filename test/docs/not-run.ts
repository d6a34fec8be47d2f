/** Commands in the docs that cannot run in a test, and why. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from './shell.ts'

/** The beginning of a command → why it is checked but not run. */
const NOT_RUN: readonly [RegExp, string][] = [
  [/^make /, 'changes the project itself, or takes minutes; its targets are there'],
  [/^git (?:clone|push|tag) /, 'needs the far repository'],
  [/^(?:docker|kubectl|helm|kustomize) |\bdocker (?:compose|stack) |\bkubectl /, 'needs a container engine'],
  [/^rabbitmqctl /, 'works only for the user of the broker, on its machine'],
  [/^npm |^npx /, 'fetches from the registry'],
  [/^\.deps\/bin\/node test\/site\/serve\.ts/, 'the site is there already'],
]

export const whyNotRun = (command: string) => NOT_RUN.find(([pattern]) => pattern.test(command))?.[1]

/** Targets of `make` that a command names but the Makefile does not have. */
export function missingTargets(command: string): string[] {
  const makefile = readFileSync(join(ROOT, 'Makefile'), 'utf8')
  const targets = new Set([...makefile.matchAll(/^([\w-]+)\s*:(?!=)/gm)].map(([, target]) => target))
  const named = [...command.matchAll(/(?:^|&& )make ((?:[\w=-]+ ?)+)/gm)].flatMap(([, words]) =>
    words!.trim().split(' '),
  )
  return named.filter((word) => !word.includes('=') && !targets.has(word))
}
