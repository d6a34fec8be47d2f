/** Browser downloads: links are reported, downloads that only the page could create are kept, and nothing escapes the spool. */
import assert from 'node:assert/strict'
import { existsSync, mkdtempDisposableSync, readFileSync, renameSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { after, before, describe, it } from 'node:test'
import '../services/chromium.ts' // tells the test runner what this file needs
import type { Download } from '../../src/core/page.ts'
import { openTestPool, type TestPool, until } from './pool.ts'
import { openSite, type Site } from './site.ts'

let site: Site
let pool: TestPool

before(async () => {
  site = await openSite({
    '/page': `<a id=link href=/report.csv>link</a><a id=window target=_blank href=/window.csv>window</a>
      <form id=form method=post action=/made></form><a id=blob download="../../../etc/../x.txt">blob</a>
      <a id=data download="data.txt" href="data:text/plain,seven%20b">data</a><a id=big download=big></a>
      <a id=slow href=/slow.csv>slow</a><a id=quiet href=/slow.csv download>slow</a><script>
        blob.href = URL.createObjectURL(new Blob(['made here']))
        big.onclick = () => { big.href = URL.createObjectURL(new Blob([new Uint8Array(3e6)])) }
      </script>`,
    '/report.csv': (_request, response) => {
      response.writeHead(200, {
        'content-type': 'text/csv',
        'content-disposition': 'attachment; filename="Q1 report.csv"',
      })
      response.end('a,b\n')
    },
    '/window.csv': (_request, response) => void response.writeHead(200, { 'content-type': 'text/csv' }).end('w'),
    '/slow.csv': (_request, response) => {
      const headers = { 'content-type': 'text/csv', 'content-disposition': 'attachment' }
      setTimeout(() => response.writeHead(200, headers).end('s'), 900)
    },
    '/by-itself': '<p id=p>your download begins shortly</p><script>location = "/report.csv"</script>',
    '/by-itself-slowly': '<p id=p>your download begins shortly</p><script>location = "/slow.csv"</script>',
    '/in-a-frame': '<p>your download begins shortly</p><iframe src=/report.csv></iframe>',
    '/made': (request, response) => {
      response.writeHead(200, {
        'content-type': 'application/zip',
        'content-disposition': 'attachment; filename=made.zip',
      })
      response.end(`made for ${request.method}`)
    },
  })
  pool = await openTestPool({ downloadBytesMax: 1_000_000 })
})
after(async () => {
  await pool[Symbol.asyncDispose]()
  await site[Symbol.asyncDispose]()
})

async function downloadsOf(script: string, take: (downloads: readonly Download[]) => void): Promise<void> {
  const page = await pool.visit(`${site.url}/page`)
  try {
    await page.live!.driver.evaluate(script)
    take(await page.live!.downloads())
  } finally {
    page.release()
  }
  await until(() => pool.pool.busy === 0, 'all slots free')
}

describe('a download', () => {
  it('is reported as a link if any client could fetch it', async () => {
    await downloadsOf('link.click()', (downloads) => {
      assert.deepEqual(downloads, [{ kind: 'link', url: `${site.url}/report.csv`, name: 'Q1 report.csv' }])
    })
    await downloadsOf('document.querySelector("#window").click()', (downloads) => {
      assert.deepEqual(downloads, [{ kind: 'link', url: `${site.url}/window.csv`, name: 'window.csv' }])
    })
  })

  for (const [script, name, text] of [
    ['blob.click()', /x\.txt$/, 'made here'],
    ['data.click()', /^data\.txt$/, 'seven b'],
    ['form.submit()', /^made\.zip$/, 'made for POST'],
  ] as const) {
    it(`is kept until it is taken or the page released if only the page could create it (${script})`, async () => {
      using folder = mkdtempDisposableSync(join(tmpdir(), 'sluice-taken-'))
      const taken = join(folder.path, 'taken')
      let path = ''
      await downloadsOf(script, ([download, ...others]) => {
        assert.equal(others.length, 0)
        assert.ok(download?.kind === 'kept')
        assert.match(download.name, name)
        assert.doesNotMatch(download.name, /[/\\]/)
        assert.equal(download.bytes, text.length)
        assert.match(relative(pool.spool, download.path), /^browsers-[\w-]+\/downloads-[\w-]+\/[\w-]+$/)
        assert.equal(readFileSync(download.path, 'utf8'), text)
        path = download.path
        renameSync(path, taken)
      })
      await until(() => !existsSync(dirname(path)), 'the folder is gone')
      assert.equal(readFileSync(taken, 'utf8'), text)
    })
  }

  it('fails if it exceeds its limit, and leaves nothing behind', async () => {
    const page = await pool.visit(`${site.url}/page`)
    await page.live!.driver.evaluate('big.click()')
    await assert.rejects(page.live!.downloads(), { code: 'E_TOO_LARGE' })
    page.release()
  })

  it('is waited for while it may be starting, even if there is another', async () => {
    const links = async (first: string, second: string) => {
      const page = await pool.visit(`${site.url}/page`)
      await page.live!.driver.click(first)
      await page.live!.driver.click(second)
      const names = (await page.live!.downloads()).map(({ name }) => name.replace(/.*_/, ''))
      page.release()
      return names.sort()
    }
    assert.equal((await links('#blob', '#link')).length, 2)
    assert.equal((await links('#link', '#blob')).length, 2)
    assert.equal((await links('#blob', '#slow')).length, 2)
    assert.equal((await links('#blob', '#quiet')).length, 2)
    assert.equal((await links('#data', '#window')).length, 2)
    await until(() => pool.pool.busy === 0, 'all slots free')
  })

  it('is not lost by any of many concurrent pages', async () => {
    const counts = await Promise.all(
      Array.from({ length: 40 }, async () => {
        const page = await pool.visit(`${site.url}/page`)
        try {
          await page.live!.driver.click('#blob')
          await page.live!.driver.click('#link')
          return (await page.live!.downloads()).length
        } finally {
          page.release()
        }
      }),
    )
    assert.deepEqual(new Set(counts), new Set([2]))
  })

  for (const [path, file] of [
    ['/by-itself', 'report.csv'],
    ['/by-itself-slowly', 'slow.csv'],
    ['/in-a-frame', 'report.csv'],
  ] as const) {
    it(`leaves the page unchanged if the page starts it by itself (${path})`, async () => {
      const page = await pool.visit(`${site.url}${path}`)
      assert.deepEqual([page.status, page.url, page.redirects], [200, `${site.url}${path}`, []])
      assert.match(page.text, /begins shortly/)
      const [download, ...others] = await page.live!.downloads()
      assert.equal(others.length, 0)
      assert.ok(download?.kind === 'link')
      assert.equal(download.url, `${site.url}/${file}`)
      page.release()
    })
  }

  it('does not exist on a page without downloads', async () => {
    const page = await pool.visit(`${site.url}/page`)
    assert.deepEqual(await page.live!.downloads(), [])
    page.release()
  })

  it('does not exist if it was never requested', async () => {
    await downloadsOf('0', (downloads) => assert.deepEqual(downloads, []))
  })
})
