import { X509Certificate } from "node:crypto"
import { rootCertificates } from "node:tls"

const pemForm = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g

/** A chain is short: longer ones are not looked at. */
const maxCertificates = 8

/** Returns the certificates of a text in PEM; none if one of them cannot be read. */
export const certificatesOf = (pem: string): ReadonlyArray<X509Certificate> => {
  const texts = pem.match(pemForm) ?? []
  if (texts.length > maxCertificates) return []
  try {
    return texts.map((text) => new X509Certificate(text))
  } catch {
    return []
  }
}

/** By the subject, in the form of `issuer`; of those that Node trusts once they are needed. */
const makeRoots = (pems: ReadonlyArray<string>) => {
  let bySubject: Map<string, ReadonlyArray<X509Certificate>> | undefined
  return (): ReadonlyMap<string, ReadonlyArray<X509Certificate>> => {
    if (bySubject === undefined) {
      bySubject = new Map()
      for (const root of pems.flatMap(certificatesOf))
        bySubject.set(root.subject, [...(bySubject.get(root.subject) ?? []), root])
    }
    return bySubject
  }
}

const trustedByNode = makeRoots(rootCertificates)

const isCurrent = (certificate: X509Certificate, nowMs: number): boolean =>
  Date.parse(certificate.validFrom) <= nowMs && nowMs <= Date.parse(certificate.validTo)

const issued = (issuer: X509Certificate, certificate: X509Certificate): boolean =>
  certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey)

const isSameCertificate = (one: X509Certificate, other: X509Certificate): boolean =>
  one.fingerprint256 === other.fingerprint256

/**
 * Returns what makes no trusted chain of certificates; undefined if they do: each is of now and
 * issued by the next one, which may issue, up to a trusted one.
 *
 * @param chain the one that is used first.
 * @param roots in PEM; undefined takes those that Node trusts.
 * @param nowMs ms since the epoch.
 */
export const chainProblem = (
  chain: ReadonlyArray<X509Certificate>,
  roots: ReadonlyArray<string> | undefined,
  nowMs: number
): string | undefined => {
  const trusted = roots === undefined ? trustedByNode() : makeRoots(roots)()
  const [first] = chain
  if (first === undefined) return "is no certificate in PEM"
  let current = first
  for (const next of [...chain.slice(1), undefined]) {
    if (!isCurrent(current, nowMs)) return "has expired, or is not valid yet"
    const isTrusted = (trusted.get(current.subject) ?? []).some((root) =>
      isSameCertificate(root, current)
    )
    if (isTrusted) return undefined
    const root = (trusted.get(current.issuer) ?? []).find(
      (one) => one.ca && isCurrent(one, nowMs) && issued(one, current)
    )
    if (root !== undefined) return undefined
    if (next === undefined) return "does not lead to a certificate that is trusted"
    if (!next.ca || !issued(next, current)) return "was not issued by the one after it"
    current = next
  }
  return undefined
}

/** Returns whether a certificate is of a host of a domain, such as `paypal.com`. */
export const isOfDomain = (certificate: X509Certificate, domain: string): boolean =>
  (certificate.subjectAltName ?? "")
    .split(", ")
    .some((name) => name.startsWith("DNS:") && name.endsWith(`.${domain}`))
