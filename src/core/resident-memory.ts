/** Memory of this process. Node opens a file to read it and throws when it cannot: then the last figure holds. */
let lastBytes = 0

export function residentBytes(): number {
  try {
    lastBytes = process.memoryUsage.rss()
  } catch {}
  return lastBytes
}
