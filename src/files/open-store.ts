/** Opens a file store by its URL: a folder, or a bucket, whose driver is loaded only then. */
import { fileURLToPath } from 'node:url'
import { ScrapeError } from '../core/errors.ts'
import type { FileStore } from './contract.ts'
import { openDiskStore } from './disk-store.ts'

/** `s3://BUCKET/PREFIX?…`, `file:///…`, or a path. */
export async function openFileStore(url: string): Promise<FileStore> {
  if (url.startsWith('s3:')) {
    const { openS3Store } = await import('./s3-store.ts')
    return await openS3Store(url)
  }
  if (url.startsWith('file:')) return await openDiskStore(fileURLToPath(url))
  if (/^[a-z][a-z0-9+.-]+:\/\//i.test(url))
    throw new ScrapeError('E_OPTION', `files cannot be stored at ${JSON.stringify(url.split('?')[0])}`, {
      fix: 'Name a folder, or a bucket: s3://BUCKET/PREFIX.',
    })
  return await openDiskStore(url)
}
