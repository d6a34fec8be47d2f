/** Child process of child.test.ts: does what it is told. */
import { sendLast } from './child.ts'

process.on('message', (order: 'talk' | 'stubborn' | 'wait') => {
  if (order === 'talk') {
    for (let i = 1; i < 1000; i++) process.send!(i)
    process.exitCode = 3
    sendLast(1000)
  }
  if (order === 'stubborn') process.on('SIGTERM', () => {})
  if (order !== 'talk') process.send!(order)
})
