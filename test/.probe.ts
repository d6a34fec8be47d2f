import { openHostileSite, CASES } from './site/hostile.ts'
import { openHttp } from '../src/fetch/http.ts'
await using site = await openHostileSite()
await using http = openHttp({userAgent:'t',timeoutMs:300,connectTimeoutMs:200,bodyBytesMax:2_000_000,redirectsMax:10,connectionsPerHost:4,retryAfterMsMax:3_600_000,allowPrivate:false,allowAddresses:['127.0.0.1:'+site.port]})
const only = process.argv.slice(2)
for (const name of Object.keys(CASES)) {
  if (only.length && !only.some(o=>name.startsWith(o))) continue
  const t=performance.now()
  const ac=new AbortController
  const r = await http.exchange({url: site.url(name)}, ac.signal).then(p=>`page ${p.status} ${p.charset} ${JSON.stringify(p.text.slice(0,40))} ${p.redirects.length}`, e=>`${e.code} ${e.message}`.slice(0,150))
  const ms=performance.now()-t
  console.log(name.padEnd(28), r, ms>100?`${ms.toFixed(0)}ms`:'')
}
