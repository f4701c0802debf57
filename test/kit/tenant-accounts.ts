import { readFile } from "node:fs/promises"
import { fileURLToPath } from "node:url"
import type { TestServer } from "./nats-server.ts"
import { startServer } from "./nats-server.ts"

const natsConf = fileURLToPath(new URL("../../nats.conf", import.meta.url))

/** Returns a part of nats.conf with its comment marks removed. */
const part = (text: string, pattern: RegExp): string => {
  const [found] = pattern.exec(text) ?? []
  if (found === undefined) throw new Error(`nats.conf has nothing like ${pattern}`)
  return found.replaceAll(/^#(?! \S|$)/gm, "")
}

/**
 * Returns the accounts of nats.conf with an account for each tenant, modelled on that of globex.
 * Each user's password is its name followed by `-1`.
 *
 * @param withhold lines that contain this text are removed from the tenants' part.
 */
export const tenantAccounts = async (tenants: ReadonlyArray<string>, withhold?: string) => {
  const conf = await readFile(natsConf, "utf8")
  const [text = "", section = ""] = conf.split(/^(?=# Tenants that do not trust each other)/m)
  const forEachTenant = (block: string) =>
    tenants
      .map((tenant) =>
        block.replaceAll("globex", tenant).replaceAll("GLOBEX", tenant.toUpperCase())
      )
      .join("\n")
      .split("\n")
      .filter((line) => withhold === undefined || !line.includes(withhold))
      .join("\n")
  const imports = part(section, /^# {4}imports: \[\n(?:#.*\n)*?# {4}\]$/m)
  const list = imports.slice(imports.indexOf("[") + 1, imports.lastIndexOf("]"))
  // These accounts replace the example of a tenant that publishes into Petrel's stream.
  const rest = text
    .replace(/^# {2}ACME \{\n(?:#.*\n)*?# {2}\}\n/m, "")
    .replace(/^.*accounts: \[ACME\].*\n/gm, "")
  return part(rest, /^#accounts \{\n(?:#.*\n)*?#\}$/m)
    .replace(/^ {2}PETREL \{$/m, `  PETREL {\n    imports: [${forEachTenant(list)}]`)
    .replace(/\}$/, `${forEachTenant(part(section, /^# {2}GLOBEX \{\n(?:#.*\n)*?# {2}\}$/m))}\n}`)
    .replaceAll(/\$PETREL_(\w+)_PASSWORD/g, (_, user: string) => `"${user.toLowerCase()}-1"`)
}

/** Returns the server's address for a user. */
export const addressFor = (server: Pick<TestServer, "port">, user: string): string =>
  `nats://${user}:${user}-1@127.0.0.1:${server.port}`

/** Starts a server with Petrel's account and one for each tenant, as shown in nats.conf. */
export const startTenantServer = async (tenants: ReadonlyArray<string>, withhold?: string) =>
  startServer({ config: await tenantAccounts(tenants, withhold) })
