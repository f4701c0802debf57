/** Time-out of the provider, ms. */
const withinMs = 5_000

/**
 * Makes what fetches a provider's certificate, in PEM, and keeps it while the receiver runs. It
 * follows no redirect.
 */
export const makeFetchCertificate = (): ((url: string) => Promise<string>) => {
  const kept = new Map<string, string>()
  return async (url) => {
    const known = kept.get(url)
    if (known !== undefined) return known
    const answer = await fetch(url, { redirect: "error", signal: AbortSignal.timeout(withinMs) })
    if (!answer.ok) throw new Error(`${url} answered ${answer.status}`)
    const pem = await answer.text()
    kept.set(url, pem)
    return pem
  }
}
