/** Memory of this process. Node reads it from a file and throws if it cannot open it; then the last value is returned. */
let lastBytes = 0

export function residentBytes(): number {
  try {
    lastBytes = process.memoryUsage.rss()
  } catch {}
  return lastBytes
}
