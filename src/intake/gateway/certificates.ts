import type { FetchCertificate } from "../source-provider.ts"

/** Time-out of a provider for its certificate, ms. */
const answerWithinMs = 5_000
const maxBytes = 64 * 1024
/** Certificates that are kept, and for how long, ms: a provider has few, and changes them rarely. */
const maxKept = 32
const keptMs = 60 * 60_000

/** Certificates that are fetched at the same time: whoever names a URL of the provider's makes us ask. */
const maxFetches = 8

/**
 * Makes what fetches providers' certificates, and keeps them for an hour. Which URLs are a
 * provider's, the provider has checked. It follows no redirect, and refuses while it fetches several
 * others.
 *
 * @param now returns ms since the epoch.
 */
export const makeCertificates = (now: () => number): FetchCertificate => {
  const kept = new Map<string, { readonly at: number; readonly pem: string }>()
  const fetched = new Map<string, Promise<string>>()
  const fetchPem = async (url: string): Promise<string> => {
    const response = await fetch(url, {
      redirect: "error",
      signal: AbortSignal.timeout(answerWithinMs)
    })
    if (!response.ok) throw new Error(`${url} answered ${response.status}`)
    const length = Number(response.headers.get("content-length") ?? 0)
    if (length > maxBytes) throw new Error(`${url} has more than ${maxBytes} bytes`)
    const pem = (await response.text()).slice(0, maxBytes)
    const [oldest] = kept.keys()
    if (kept.size >= maxKept && oldest !== undefined) kept.delete(oldest)
    kept.set(url, { at: now(), pem })
    return pem
  }
  return (url) => {
    const known = kept.get(url)
    if (known !== undefined && now() - known.at < keptMs) {
      // The one that was used last goes last.
      kept.delete(url)
      kept.set(url, known)
      return Promise.resolve(known.pem)
    }
    const under = fetched.get(url)
    if (under !== undefined) return under
    if (fetched.size >= maxFetches)
      return Promise.reject(new Error(`${maxFetches} certificates are being fetched already`))
    const pem = fetchPem(url).finally(() => fetched.delete(url))
    fetched.set(url, pem)
    return pem
  }
}
