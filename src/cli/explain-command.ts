/** `sluice explain`: one error in full, or the list of all. */
import type { Command } from 'commander'
import { addReadFlags, print, printJson, type ReadFlags } from './output.ts'

const HELP = `
Examples:
  sluice explain E_SELECTOR_EMPTY
  sluice explain timeout-total
  sluice explain`

export function defineExplain(program: Command): void {
  const command = program
    .command('explain [code]')
    .description('explain an error code, or list them all')
    .addHelpText('after', HELP)
    .action(async (code: string | undefined, flags: ReadFlags) => {
      const [{ exitCodeFor, explainAllText, explainText, findErrorCode }, { EVERY_ERROR }, { paintFor }] =
        await Promise.all([import('./explain.ts'), import('../core/error-table.ts'), import('./style.ts')])
      const toJson = (known: keyof typeof EVERY_ERROR) => ({
        code: known,
        ...EVERY_ERROR[known],
        exitCode: exitCodeFor(known),
      })
      const found = code === undefined ? undefined : findErrorCode(code)
      if (flags.json)
        printJson(
          found === undefined ? (Object.keys(EVERY_ERROR) as (keyof typeof EVERY_ERROR)[]).map(toJson) : toJson(found),
        )
      else if (!flags.quiet) {
        const paint = paintFor(process.stdout)
        print(found === undefined ? explainAllText(paint) : explainText(found, paint))
      }
    })
  addReadFlags(command, 'it')
}
