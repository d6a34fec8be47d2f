/** The queue by itself, for a program that fetches by its own means: `node docs/examples/url-queue.ts postgres://…`. */
import { openUrlQueue } from 'sluice'

const [database] = process.argv.slice(2)
await using queue = await openUrlQueue(database!, { runId: 'my-run' })

const { added, seen } = await queue.enqueueUrls([
  'https://a.example/1',
  'https://a.example/2',
  'https://a.example/1#again',
])
console.log(`${added} added, ${seen} seen before`)

for (;;) {
  await queue.releaseExpiredLeases()
  const batch = await queue.claimBatch('worker-1', 50)
  if (batch.length === 0) break
  for (const lease of batch) {
    console.log(`working on ${lease.task.url}`)
    await queue.completeUrl(lease) // or { error }: then it is tried again, three times
  }
}
console.log(await queue.getQueueStats())
