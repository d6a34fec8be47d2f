/** `sluice doctor`: checks whether this machine is ready, and if not, what to do. */
import type { Command } from 'commander'
import type { Finding } from '../app/doctor/finding.ts'
import { addOptions } from './flags.ts'
import { addReadFlags, print, printJson, type ReadFlags } from './output.ts'

interface DoctorFlags extends ReadFlags {
  host: string
  out?: string
  frontier?: string
}

const HELP = `
Exit code 0 if everything is fine, 1 if something must be fixed, 3 if a configured service does not respond.`

export function defineDoctor(program: Command): void {
  const command = program
    .command('doctor')
    .description('check this machine for problems, and how to fix them')
    .option('--host <name>', 'a host name that must resolve', 'example.com')
    .addHelpText('after', HELP)
    .action(async (flags: DoctorFlags) => {
      process.exitCode = await doctor(flags)
    })
  addReadFlags(command, 'the findings')
  addOptions(command, ['out', 'frontier', 'contact'])
}

async function doctor({ host, json, quiet, ...flags }: DoctorFlags): Promise<number> {
  const [{ examine }, { OPTIONS }] = await Promise.all([
    import('../app/doctor/doctor.ts'),
    import('../config/option-table.ts'),
  ])
  const known = Object.fromEntries(Object.entries(flags).filter(([name]) => name in OPTIONS))
  const findings = await examine({ host, flags: known })
  const has = (status: Finding['status']) => findings.some((finding) => finding.status === status)
  const exitCode = has('missing') ? 3 : has('fail') ? 1 : 0
  if (json) printJson({ isReady: exitCode === 0, findings })
  else if (!quiet) print(await findingsText(findings))
  return exitCode
}

async function findingsText(findings: Finding[]): Promise<string> {
  const { paintFor, plural, printable, table } = await import('./style.ts')
  const paint = paintFor(process.stdout)
  const word: Record<Finding['status'], string> = {
    ok: paint('green', '✔ ok'),
    warn: paint('yellow', '! warn'),
    fail: paint('red', '✘ fail'),
    missing: paint('red', '✘ missing'),
  }
  const rows = findings.map(({ check, status, what }) => [word[status], check, printable(what)])
  const lines = table(rows)
    .split('\n')
    .flatMap((line, i) => [line, ...(findings[i]!.fix === '' ? [] : [`    ${paint('cyan', '→')} ${findings[i]!.fix}`])])
  const bad = findings.filter(({ status }) => status === 'fail' || status === 'missing').length
  const end = bad === 0 ? paint('green', 'ready') : paint('red', `${plural(bad, 'problem')} to fix`)
  return [...lines, '', end].join('\n')
}
