/** Is this container well? Asks /healthz of the process in it: a server's on 7700, or where SLUICE_METRICS says. The image has no curl. */
const address = process.env.SLUICE_METRICS ?? ''
const port = /:(\d+)$/.exec(address)?.[1] ?? process.env.HEALTH_PORT ?? '7700'

try {
  const answer = await fetch(`http://127.0.0.1:${port}/healthz`, { signal: AbortSignal.timeout(4_000) })
  const text = await answer.text()
  console.log(`${answer.status} ${text.slice(0, 500)}`)
  process.exitCode = answer.ok ? 0 : 1
} catch (error) {
  console.log(`no answer on port ${port}: ${error.cause?.code ?? error.name}`)
  process.exitCode = 1
}
