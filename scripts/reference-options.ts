/** docs/reference/options.md: every option with its default and bounds, from the schemas that check them. */
import * as z from 'zod'
import { boundsOf, innermost, optionBounds } from '../src/config/option-bounds.ts'
import { envName, flagName, optionSpecs } from '../src/config/option-table.ts'
import { limitsSchema } from '../src/core/options.ts'
import { markdownTable, NOTE, page, sentence } from './reference-text.ts'

export function optionsPage(): string {
  const runRows = optionSpecs.map(([name, spec]) => {
    const { accepts, default: usual } = optionBounds(name)
    return [
      `\`${name}\``,
      `\`${flagName(name)}${spec.value === undefined ? '' : ` ${spec.value}`}\``,
      `\`${envName(name)}\``,
      usual,
      accepts,
      `${sentence(spec.describe)}${spec.limit === undefined ? '' : ` Sets \`limits.${spec.limit}\`.`}`,
    ]
  })
  return page([
    '# Options',
    NOTE,
    'What a scraper may set under `limits`. Durations are `"500ms"`, `"30s"`, `"2m"`, `"1h"`, `"1d"` or milliseconds; sizes are `"64KB"`, `"16MiB"` or bytes. Unknown names and values out of bounds stop the program, with all problems in one message.',
    markdownTable(['option', 'default', 'values', 'what it does'], limitRows(limitsSchema, '')),
    '## Options of a run',
    'Each is a flag of `sluice run`, an environment variable (also in `.env`), and a name in `sluice.config.ts`. Later ones override earlier ones: defaults, the `limits` of the scraper, `sluice.config.ts`, `.env`, environment, flags. `sluice config --explain` shows every value and where it came from. An editor checks a config file that ends in `satisfies Options`, a type that `sluice` exports.',
    markdownTable(['option', 'flag', 'environment', 'default', 'values', 'what it does'], runRows),
  ])
}

function limitRows(schema: z.ZodObject, prefix: string): string[][] {
  return Object.entries(schema.shape as Record<string, z.ZodType>).flatMap(([name, field]) => {
    const inner = innermost(field)
    if (inner instanceof z.ZodObject) return limitRows(inner, `${prefix}${name}.`)
    const { accepts, default: usual } = boundsOf(field)
    return [[`\`${prefix}${name}\``, usual, accepts, sentence(field.description ?? '')]]
  })
}
