import type { FetchCertificate } from "../source-provider.ts"

/** Time-out of a provider for its certificate, ms. */
const answerWithinMs = 5_000
const maxBytes = 64 * 1024
/** Certificates that are kept, and for how long, ms: a provider has few, and changes them rarely. */
const maxKept = 32
const keptMs = 60 * 60_000

/**
 * Makes what fetches providers' certificates, and keeps them for an hour. Which URLs are a
 * provider's, the provider has checked. It follows no redirect.
 *
 * @param now returns ms since the epoch.
 */
export const makeCertificates = (now: () => number): FetchCertificate => {
  const kept = new Map<string, { readonly at: number; readonly pem: Promise<string> }>()
  const fetchPem = async (url: string): Promise<string> => {
    const response = await fetch(url, {
      redirect: "error",
      signal: AbortSignal.timeout(answerWithinMs)
    })
    if (!response.ok) throw new Error(`${url} answered ${response.status}`)
    const length = Number(response.headers.get("content-length") ?? 0)
    if (length > maxBytes) throw new Error(`${url} has more than ${maxBytes} bytes`)
    return (await response.text()).slice(0, maxBytes)
  }
  return (url) => {
    const known = kept.get(url)
    if (known !== undefined && now() - known.at < keptMs) return known.pem
    if (kept.size >= maxKept) kept.clear()
    const pem = fetchPem(url)
    kept.set(url, { at: now(), pem })
    pem.catch(() => kept.delete(url))
    return pem
  }
}
