/** Human-readable numbers: thousands separators, sizes, durations, rates, times of day. */

/** `1284` → `1,284`. Grouped manually: `toLocaleString` needs 20 µs and follows the machine's language. */
export function formatCount(value: number): string {
  if (!Number.isFinite(value)) return '–'
  const digits = String(Math.round(Math.abs(value)))
  const grouped = digits.replace(/\B(?=(\d{3})+$)/g, ',')
  return value < 0 && digits !== '0' ? `-${grouped}` : grouped
}

/** `41`, `3.7`, `0.25`: three significant digits at most, for rates. */
export function formatRate(perSecond: number): string {
  if (!Number.isFinite(perSecond)) return '–'
  if (perSecond >= 9.95) return formatCount(perSecond)
  if (perSecond >= 0.995 || perSecond === 0) return trimZero(perSecond.toFixed(1))
  return trimZero(perSecond.toFixed(2))
}

const BYTE_UNITS = ['B', 'kB', 'MB', 'GB', 'TB', 'PB']

/** `3100000` → `3.1 MB`, in powers of ten as disks and networks count. */
export function formatBytes(bytes: number): string {
  if (!Number.isFinite(bytes) || bytes < 0) return '–'
  let value = bytes
  let unit = 0
  while (value >= 999.5 && unit < BYTE_UNITS.length - 1) {
    value /= 1000
    unit += 1
  }
  const text = unit === 0 || value >= 99.95 ? String(Math.round(value)) : trimZero(value.toFixed(1))
  return `${text} ${BYTE_UNITS[unit]}`
}

/** Clock style: `0:25`, `12:03`, `1:04:09`, `2d 03:10`. */
export function formatDuration(ms: number): string {
  if (!Number.isFinite(ms) || ms < 0) return '–'
  const seconds = Math.floor(ms / 1000)
  const [d, h, m, s] = [
    Math.floor(seconds / 86_400),
    Math.floor(seconds / 3600) % 24,
    Math.floor(seconds / 60) % 60,
    seconds % 60,
  ]
  if (d > 0) return `${d}d ${two(h)}:${two(m)}`
  return h > 0 ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`
}

/** A duration in units that fit its size: `0.4 ms`, `182 ms`, `2.4 s`, `3 min 05 s`, `1 h 04 min`. */
export function formatMs(ms: number): string {
  if (!Number.isFinite(ms) || ms < 0) return '–'
  if (ms < 9.95) return `${trimZero(ms.toFixed(1))} ms`
  if (ms < 999.5) return `${Math.round(ms)} ms`
  if (ms < 59_950) return `${trimZero((ms / 1000).toFixed(1))} s`
  const seconds = Math.round(ms / 1000)
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${two(seconds % 60)} s`
  return `${Math.floor(seconds / 3600)} h ${two(Math.floor(seconds / 60) % 60)} min`
}

/** `0.998` → `99.8 %`. Never rounds up to 100 % or down to 0 %: one empty field in a million must show. */
export function formatRatio(ratio: number): string {
  if (!Number.isFinite(ratio)) return '–'
  const percent = ratio * 100
  if (percent <= 0 || percent >= 100) return `${Math.round(percent)} %`
  if (percent > 99.9) return '99.9 %'
  if (percent < 0.1) return '0.1 %'
  return `${trimZero(percent.toFixed(1))} %`
}

/** Local time of day, `07:31:20`. */
export function formatTime(epochMs: number): string {
  const date = new Date(epochMs)
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`
}

/** `plural(1, 'page')` → `1 page`. */
export function plural(count: number, noun: string, nouns = `${noun}s`): string {
  return `${formatCount(count)} ${count === 1 ? noun : nouns}`
}

const two = (n: number) => String(n).padStart(2, '0')
const trimZero = (text: string) => text.replace(/\.?0+$/, '') || '0'
