/** An instance in its own thread or process: takes orders from the parent, and ends with it. */
import { parentPort, workerData } from 'node:worker_threads'
import { sendLast } from '../../core/child.ts'
import { toScrapeError } from '../../core/errors.ts'
import type { InstanceMessage, InstanceOrder } from './instances.ts'
import { type InstanceSpec, runInstance } from './open-instance.ts'

const stop = new AbortController()

if (parentPort === null) {
  process.on('SIGTERM', () => {}) // a signal to the whole group; the parent decides and tells us
  process.on('SIGINT', () => {})
  process.on('disconnect', () => process.exit(1)) // an orphan's tasks are taken over, so it must not continue
  process.on('message', (order: InstanceOrder | { spec: InstanceSpec }) => {
    if (typeof order === 'string') stop.abort()
    else void carryOut(order.spec)
  })
} else {
  parentPort.on('message', () => stop.abort())
  void carryOut(workerData as InstanceSpec)
}

async function carryOut(spec: InstanceSpec): Promise<void> {
  try {
    const listeners = {
      onLog: (level: 'info' | 'warn', message: string) => send({ kind: 'log', level, message }),
      onTask: (end: Extract<InstanceMessage, { kind: 'task' }>['end']) => send({ kind: 'task', end }),
      onAnswer: () => send({ kind: 'answer' }),
    }
    await runInstance(spec, listeners, stop.signal)
    end({ kind: 'end' })
  } catch (error) {
    const { code, message, fix } = toScrapeError(error, 'E_HANDLER')
    end({ kind: 'failed', code, message, fix })
  }
}

function end(message: InstanceMessage): void {
  process.removeAllListeners('disconnect')
  if (parentPort === null) sendLast(message)
  else {
    parentPort.postMessage(message)
    parentPort.close()
  }
}

function send(message: InstanceMessage): void {
  if (parentPort !== null) parentPort.postMessage(message)
  else if (process.connected) process.send?.(message, () => {})
}
