/** docker-compose.yml as local processes: commands and environment come from the file, only paths and addresses differ. */
import { mkdirSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { documentsOf, filledIn, type Json, ROOT, textOf } from '../../deploy/checks.ts'

/** A container replaced by a folder: its mounts are below `root` instead of `/`. */
export interface Place {
  root: string
  env: Record<string, string>
  command: string[]
  /** A path in the container as a local path. */
  locate(path: string): string
}

export class Compose {
  readonly #services: Record<string, Json>
  readonly #folder: string

  /** Volumes become folders below `folder`. `variables` replace `${NAME:-default}` in the file. */
  constructor(folder: string, variables: Readonly<Record<string, string>>) {
    this.#folder = folder
    this.#services = filledIn(documentsOf(textOf('docker-compose.yml'))[0], variables).services
  }

  /** Names of the services of these profiles, in the order of the file. */
  named(profiles: readonly string[]): string[] {
    const isIn = (service: Json) => service.profiles?.some((profile: string) => profiles.includes(profile))
    return Object.keys(this.#services).filter((name) => isIn(this.#services[name]))
  }

  isOurs(name: string): boolean {
    return /^sluice(?:-browser)?:/.test(this.#services[name].image)
  }

  /** The folder that replaces a volume. */
  volume(name: string): string {
    return join(this.#folder, 'volumes', name)
  }

  /** Prepared for a start. `instance` distinguishes several of one service. */
  place(name: string, instance = 1): Place {
    const { volumes = [], tmpfs = [], environment = {}, entrypoint = [], command = [] } = this.#services[name]
    const root = join(this.#folder, 'containers', `${name}-${instance}`)
    const mounts: string[] = []
    for (const volume of volumes as string[]) {
      const [from, to] = volume.split(':') as [string, string?]
      if (to === undefined) {
        mkdirSync(join(root, from), { recursive: true }) // an anonymous volume belongs to the container
        mounts.push(from)
        continue
      }
      const source = from.startsWith('.') ? join(ROOT, OTHER_FOLDERS[from] ?? from) : this.volume(from)
      if (!from.startsWith('.')) mkdirSync(source, { recursive: true })
      mkdirSync(dirname(join(root, to)), { recursive: true })
      symlinkSync(source, join(root, to))
      mounts.push(to)
    }
    for (const path of (tmpfs as string[]).map((mount) => mount.split(':')[0]!)) {
      mkdirSync(join(root, path), { recursive: true })
      mounts.push(path)
    }
    mkdirSync(join(root, WORK_FOLDER), { recursive: true })
    const locate = (path: string) => (mounts.some((mount) => isBelow(path, mount)) ? join(root, path) : path)
    return {
      root,
      locate,
      env: Object.fromEntries(Object.entries<string>(environment).map(([key, value]) => [key, locate(value)])),
      command: [...entrypoint, ...command].map(locate),
    }
  }
}

/** The user's own scrapers; the bundled ones are found anyway, as in the image. */
const OTHER_FOLDERS: Readonly<Record<string, string>> = { './scrapers': 'scripts/stack/scrapers' }

/** WORKDIR of the Dockerfile. */
export const WORK_FOLDER = '/srv/sluice'

/** `/secrets` contains the mount `/secrets/api` without being one. */
const isBelow = (path: string, mount: string) => `${path}/`.startsWith(`${mount}/`) || mount.startsWith(`${path}/`)
