/**
 * Packages that few projects need are optional peer dependencies: a driver, a browser, a format. They are loaded only here, so
 * that the error for a missing one always names the command that installs it.
 */
import { createRequire } from 'node:module'
import { ScrapeError } from './errors.ts'

interface Manifest {
  peerDependencies: Record<string, string>
}

/** `needs` begins the message: `PostgreSQL needs`. Throws `E_PACKAGE_MISSING`. */
export async function optionalPackage<T>(
  needs: string,
  names: string | readonly string[],
  load: () => Promise<T>,
): Promise<T> {
  try {
    return await load()
  } catch (cause) {
    throw missing(needs, [names].flat(), cause)
  }
}

/** The same without loading them: for packages that are needed later, checked before the work begins. */
export function assertInstalled(needs: string, names: string | readonly string[]): void {
  if ([names].flat().some((name) => !isInstalled(name))) throw missing(needs, [names].flat(), NOT_FOUND)
}

export function isInstalled(name: string): boolean {
  try {
    import.meta.resolve(name)
    return true
  } catch {
    return false
  }
}

const NOT_FOUND = { code: 'ERR_MODULE_NOT_FOUND' }

function missing(needs: string, wanted: readonly string[], cause: unknown): ScrapeError {
  const absent = wanted.filter((name) => !isInstalled(name))
  const names = absent.length > 0 ? absent : wanted
  const many = names.length > 1
  const isMissing = (cause as { code?: string }).code === NOT_FOUND.code
  const why = isMissing
    ? `${many ? 'are' : 'is'} not installed`
    : `cannot be loaded: ${(cause as Error).message.split('\n')[0]}`
  const message = `${needs} the package${many ? 's' : ''} ${names.join(' and ')}, which ${why}`
  const fix = installCommand(names)
  return new ScrapeError('E_PACKAGE_MISSING', message, { fix, ...(cause instanceof Error ? { cause } : {}) })
}

/** Names the versions we test with. A global sluice needs them installed globally, or it would not find them. */
export function installCommand(names: readonly string[]): string {
  const isGlobal = import.meta.filename.includes('/lib/node_modules/sluice/')
  return `npm install ${isGlobal ? '--global ' : ''}${names.map((name) => `${name}@${optionalVersion(name)}`).join(' ')}`
}

export function optionalVersion(name: string): string {
  const { peerDependencies } = createRequire(import.meta.url)('../../package.json') as Manifest
  return peerDependencies[name]!.replace('^', '')
}
