/**
 * Does the process of this container live? Asks its /livez: a server's on 7700, or where SLUICE_METRICS says. The image has no curl.
 * Not /healthz: Swarm replaces what is ill, and a store that is away must not cost the whole fleet.
 */
const address = process.env.SLUICE_METRICS ?? ''
const port = /:(\d+)$/.exec(address)?.[1] ?? process.env.HEALTH_PORT ?? '7700'

try {
  const answer = await fetch(`http://127.0.0.1:${port}/livez`, { signal: AbortSignal.timeout(4_000) })
  const text = await answer.text()
  console.log(`${answer.status} ${text.slice(0, 500)}`)
  process.exitCode = answer.ok ? 0 : 1
} catch (error) {
  console.log(`no answer on port ${port}: ${error.cause?.code ?? error.name}`)
  process.exitCode = 1
}
