import { readFile } from "node:fs/promises"
import { fileURLToPath } from "node:url"
import type { TestServer } from "./nats-server.ts"
import { startServer } from "./nats-server.ts"

const natsConf = fileURLToPath(new URL("../nats.conf", import.meta.url))

const withoutMarks = (lines: string): string => lines.replaceAll(/^#(?! \S|$)/gm, "")

const part = (text: string, pattern: RegExp): string => {
  const [found] = pattern.exec(text) ?? []
  if (found === undefined) throw new Error(`nats.conf has nothing like ${pattern}`)
  return withoutMarks(found)
}

/**
 * The accounts of tenants as nats.conf shows them for acme, and an account for Petrel with an
 * operator who may do everything.
 *
 * @param withhold lines of which none that has this in it is taken over.
 */
export const tenantAccounts = async (tenants: ReadonlyArray<string>, withhold?: string) => {
  const text = await readFile(natsConf, "utf8")
  const account = part(text, /^# {2}ACME \{\n(?:#.*\n)*?# {2}\}$/m)
  const imports = part(text, /^# {4}imports: \[\n(?:#.*\n)*?# {4}\]$/m)
  const list = imports.slice(imports.indexOf("[") + 1, imports.lastIndexOf("]"))
  const forEach = (block: string) =>
    tenants
      .map((tenant) =>
        block.replaceAll("acme", tenant).replaceAll("ACME", `A_${tenant.toUpperCase()}`)
      )
      .join("\n")
  const passwords = forEach("$PETREL_ACME_PASSWORD").split("\n")
  const accounts = passwords.reduce(
    (all, name, index) => all.replace(name, `${tenants[index]}-1`),
    forEach(account)
  )
  const config = `accounts {
  PETREL {
    jetstream: enabled
    users: [{ user: operator, password: operator-1 }]
    imports: [${forEach(list)}]
  }
${accounts}
}`
  const lines = config.split("\n")
  return lines.filter((line) => withhold === undefined || !line.includes(withhold)).join("\n")
}

/** An address of the server for one of its users. */
export const addressFor = (server: Pick<TestServer, "port">, user: string): string =>
  `nats://${user}:${user}-1@127.0.0.1:${server.port}`

/** A server with an account for Petrel and one for each tenant. */
export const startTenantServer = async (tenants: ReadonlyArray<string>, withhold?: string) =>
  startServer({ config: await tenantAccounts(tenants, withhold) })
