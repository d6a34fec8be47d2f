/** A real nginx for tests, with the test's server block. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findProgram, type Service } from './find-program.ts'
import { isAnswered, withFreePort } from './free-port.ts'
import { OwnedServer } from './owned-server.ts'

export const NGINX: Service = { name: 'nginx', program: 'usr/sbin/nginx', package: 'nginx' }

export interface NginxServer extends AsyncDisposable {
  readonly port: number
}

/** `serverFor`: the `server { … }` block that listens on this port. */
export async function nginxForTests(serverFor: (port: number) => string): Promise<NginxServer> {
  const { path, env } = await findProgram(NGINX)
  const server = new OwnedServer('nginx', { stopSignal: 'SIGTERM' })
  try {
    const port = await withFreePort(async (free) => {
      const file = join(server.folder, 'nginx.conf')
      writeFileSync(file, configOf(server.folder, serverFor(free)))
      const args = ['-p', server.folder, '-e', join(server.folder, 'error.log'), '-c', file]
      await server.start({ file: path, args, env, isReady: () => isAnswered(free) })
      return free
    })
    return { port, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() }
  } catch (error) {
    await server[Symbol.asyncDispose]()
    throw error
  }
}

/** One process that stays in the foreground and keeps everything in its folder. */
function configOf(folder: string, serverBlock: string): string {
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  return `daemon off;
master_process off;
pid ${folder}/pid;
error_log stderr warn;
events {}
http {
  access_log off;
${paths.map((name) => `  ${name}_temp_path ${folder}/${name};`).join('\n')}
${serverBlock}
}
`
}
