import { execFileSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

export interface TestCertificates {
  /** In PEM. */
  readonly root: string
  /** The leaf, and the one that issued it. */
  readonly chain: string
  readonly leaf: string
  /** Of a host that is not PayPal's, by the same issuer. */
  readonly foreign: string
  /** Issued by the leaf, which may not issue. */
  readonly belowLeaf: string
  /** Of the leaf, the foreign one and the one below. */
  readonly leafKey: string
}

const make = (): TestCertificates => {
  const folder = mkdtempSync(join(tmpdir(), "petrel-certificates-"))
  const path = (name: string) => join(folder, name)
  const openssl = (...words: ReadonlyArray<string>) =>
    execFileSync("openssl", words, { cwd: folder, stdio: ["ignore", "ignore", "ignore"] })
  const text = (name: string) => readFileSync(path(name), "utf8")
  const issue = (name: string, issuer: string, key: string, extensions: string) => {
    writeFileSync(path(`${name}.ext`), extensions)
    openssl(...["req", "-new", "-key", `${key}.key`, "-subj", `/CN=${name}`, "-out", `${name}.csr`])
    openssl(
      ...["x509", "-req", "-in", `${name}.csr`, "-days", "7300", "-extfile", `${name}.ext`],
      ...["-CA", `${issuer}.crt`, "-CAkey", `${issuer}.key`, "-CAcreateserial"],
      ...["-out", `${name}.crt`]
    )
  }
  try {
    openssl(
      ...["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"],
      ...["-keyout", "root.key", "-out", "root.crt", "-subj", "/CN=root", "-days", "7300"]
    )
    openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", "middle.key")
    openssl("genrsa", "-out", "leaf.key", "2048")
    issue("middle", "root", "middle", "basicConstraints=critical,CA:TRUE")
    const ofHost = (host: string) => `basicConstraints=CA:FALSE\nsubjectAltName=DNS:${host}`
    issue("leaf", "middle", "leaf", ofHost("messageverificationcerts.paypal.com"))
    issue("foreign", "middle", "leaf", ofHost("messageverificationcerts.notpaypal.com"))
    issue("below", "leaf", "leaf", ofHost("forged.paypal.com"))
    return {
      root: text("root.crt"),
      chain: text("leaf.crt") + text("middle.crt"),
      leaf: text("leaf.crt"),
      foreign: text("foreign.crt") + text("middle.crt"),
      belowLeaf: text("below.crt") + text("leaf.crt") + text("middle.crt"),
      leafKey: text("leaf.key")
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Certificates of 20 years: a root, an issuer below it, and those that it has issued. */
export const testCertificates = make()
