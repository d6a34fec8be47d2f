/** A step that stores a thumbnail beside every image. Needs the package `sharp`. */
import { optionalPackage } from '../core/optional-package.ts'
import type { FileStep } from './contract.ts'

const BYTES_MAX = 100 * 1024 ** 2
/** A small file may decompress into an image that fills the memory. */
const PIXELS_MAX = 50_000_000
const SIDE_PIXELS = 320

export function thumbnail(): FileStep {
  return {
    name: 'thumbnail',
    takes: (contentType) => /^image\/(?:jpeg|png|apng|webp|gif|avif|tiff)$/.test(contentType),
    async run({ path, bytes, signal }, put) {
      if (bytes > BYTES_MAX) throw new Error(`${bytes} bytes are more than the ${BYTES_MAX} it reads`)
      const { default: sharp } = await optionalPackage('thumbnails need', 'sharp', () => import('sharp'))
      sharp.concurrency(1)
      sharp.cache(false)
      const image = sharp(path, { limitInputPixels: PIXELS_MAX, failOn: 'error' })
      const { width = 0, height = 0 } = await image.metadata()
      signal.throwIfAborted()
      const small = await image
        .rotate()
        .resize(SIDE_PIXELS, SIDE_PIXELS, { fit: 'inside', withoutEnlargement: true })
        .jpeg({ quality: 75 })
        .timeout({ seconds: 20 })
        .toBuffer()
      return { width, height, where: await put('thumb.jpg', small, 'image/jpeg') }
    },
  }
}
