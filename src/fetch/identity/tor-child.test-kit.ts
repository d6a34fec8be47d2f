/** Opens a Tor daemon, reports it, and stays until it is killed. `node tor-child.test-kit.ts BINARY DATADIR` */
import { openTor } from './tor.ts'

const [binary, dataDir] = process.argv.slice(2)
const tor = await openTor({ binary: binary!, dataDir: dataDir!, settings: ['Socks5Proxy 127.0.0.1:1'] })
console.log(tor.pid)
setInterval(() => {}, 60_000)
