/**
 * Makes every password and key of docker-compose.yml once, at random. Each folder below BASE is a volume of its own, seen only by
 * the services that need it; in it files are readable, because each service reads them as a user of its own, without capabilities.
 * Passwords are made first and never again; what is made of them (URLs, configuration) is written on every start.
 */
import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const base = process.argv[2] ?? '/secrets'

/** Whole or not at all: a start that is cut off must not leave half a password. */
function write(path, text) {
  const whole = join(base, path)
  mkdirSync(dirname(whole), { recursive: true }) // in the image each is a volume; by hand there is none
  writeFileSync(`${whole}.new`, text, { mode: 0o444 })
  renameSync(`${whole}.new`, whole)
}

/** Letters and digits only: the same text is right in a URL, a shell and a configuration file. */
function password(path) {
  const whole = join(base, path)
  if (!existsSync(whole)) {
    write(path, randomBytes(24).toString('hex'))
    console.log(`made ${path}`)
  }
  return readFileSync(whole, 'utf8')
}

const key = password('api/key')
password('grafana/password')
const postgres = password('postgres/password')
const redis = password('redis/password')
const rabbitmq = password('rabbitmq/password.txt')
// Prometheus may read, and nothing else.
write('api/keys', `${key}\nread:${password('metrics/sluice_metrics_key')}\n`)

const store = `postgres://sluice:${postgres}@postgres:5432/sluice`
const cache = `redis://:${redis}@redis:6379/0`
write('links/store', store)
write('links/redis', cache)
write('links/frontier-postgres', store)
write('links/frontier-redis', cache)
write('links/frontier-amqp', `amqp://sluice:${rabbitmq}@rabbitmq:5672`)
write(
  'redis/redis.conf',
  // noeviction: a queue that forgets under pressure is none. Memory: below the container's limit of 1 GB, so that a full Redis says so.
  `requirepass ${redis}\nappendonly yes\nappendfsync everysec\nmaxmemory 768mb\nmaxmemory-policy noeviction\ndir /data\nbind * -::*\n`,
)
write(
  'rabbitmq/10-sluice.conf',
  // The folder hides the image's own defaults, which would only let `guest` in. Memory: below the container's limit of 1 GB.
  `default_user = sluice\ndefault_pass = ${rabbitmq}\nlog.console = true\nlog.file = false\nvm_memory_high_watermark.absolute = 600MB\n`,
)
