/** `sluice demo`: serves the site of the project templates, in the foreground. */
import type { Command } from 'commander'

const HELP = `
A book shop as pages (/), as a JSON API (/api/books), rendered by JavaScript (/app), and a job board (/api/jobs), on this
machine only. \`sluice run\` starts it automatically for scrapers that use it; for workers of a fleet, start it yourself.

Examples:
  sluice demo
  sluice demo --port 4280`

export function defineDemo(program: Command): void {
  program
    .command('demo')
    .description('serve the small site that the project templates scrape')
    .option('--port <N>', 'port on 127.0.0.1', '4180')
    .option('-v, --verbose', 'print stack traces')
    .addHelpText('after', HELP)
    .action(async ({ port }: { port: string }) => {
      await demo(port)
    })
}

async function demo(port: string): Promise<void> {
  const [{ startDemoSite }, { ScrapeError }, { print }] = await Promise.all([
    import('../app/demo/demo-site.ts'),
    import('../core/errors.ts'),
    import('./output.ts'),
  ])
  if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535)
    throw new ScrapeError('E_USAGE', `--port takes a number up to 65535, got ${JSON.stringify(port)}`)
  await using site = await startDemoSite(Number(port))
  print(site.url)
  await new Promise<void>((resolve) => {
    process.once('SIGINT', () => resolve())
    process.once('SIGTERM', () => resolve())
  })
}
