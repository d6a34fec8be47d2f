/** `sluice explain`: an error in full, or all of them. */
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
    .description('tell all about an error; without a code, list all of them')
    .addHelpText('after', HELP)
    .action(async (code: string | undefined, flags: ReadFlags) => {
      const [
        { explainAllText, explainText, findErrorCode },
        { ERRORS },
        { exitCodeOf },
        { paintFor },
        { ScrapeError },
      ] = await Promise.all([
        import('./explain.ts'),
        import('../core/error-table.ts'),
        import('./print-error.ts'),
        import('./style.ts'),
        import('../core/errors.ts'),
      ])
      const toJson = (known: keyof typeof ERRORS) => {
        const kind = ERRORS[known]
        const exit = kind.verdict === 'halt' ? exitCodeOf(new ScrapeError(known, kind.what)) : null
        return { code: known, ...kind, exitCode: exit }
      }
      const found = code === undefined ? undefined : findErrorCode(code)
      if (flags.json)
        printJson(found === undefined ? (Object.keys(ERRORS) as (keyof typeof ERRORS)[]).map(toJson) : toJson(found))
      else if (!flags.quiet) {
        const paint = paintFor(process.stdout)
        print(found === undefined ? explainAllText(paint) : explainText(found, paint))
      }
    })
  addReadFlags(command, 'it')
}
