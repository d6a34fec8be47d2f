/** `sluice completion`: shell scripts that complete commands, flags and names, generated from the commands themselves. */
import type { Command } from 'commander'
import { printData } from './output.ts'

const HELP = `
Set up:
  bash   source <(sluice completion bash)                                    in ~/.bashrc
  zsh    sluice completion zsh > ~/.zfunc/_sluice                             with fpath+=~/.zfunc before compinit
  fish   sluice completion fish > ~/.config/fish/completions/sluice.fish`

export function defineCompletion(program: Command): void {
  program
    .command('completion <shell>')
    .description('print a script that completes commands in bash, zsh or fish')
    .option('-v, --verbose', 'print stack traces')
    .addHelpText('after', HELP)
    .action(async (shell: string) => {
      const [{ SHELLS, completionScript, describeCommands }, { ScrapeError }] = await Promise.all([
        import('./completion-scripts.ts'),
        import('../core/errors.ts'),
      ])
      const known = SHELLS.find((name) => name === shell)
      if (known === undefined)
        throw new ScrapeError('E_USAGE', `no completion for the shell ${JSON.stringify(shell)}`, {
          fix: `sluice completion ${SHELLS.join(' | ')}`,
        })
      printData(completionScript(known, describeCommands(program)))
    })
}
