/** Names and addresses of this very machine, which browsers take for trustworthy even without TLS. */
export const isLoopback = (hostname: string) => hostname === 'localhost' || /^127\.|^\[::1\]$/.test(hostname)
