import { endpointRequests, endpointSettings } from "../../src/domain/settings/endpoint-table.ts"
import type { Input, Removal, Setting } from "../../src/domain/settings/setting.ts"
import { tenantSettings } from "../../src/domain/settings/tenant-table.ts"

const removals: Readonly<Record<Removal, string>> = {
  never: "",
  null: "`null`",
  empty: "`{}` or `false`",
  "null by name": "`null` for a name",
  "null by part": "`null` for a part"
}

const cell = (text: string): string => text.replaceAll("|", "\\|")

const inputRow = (name: string, { text, usual = "" }: Input): ReadonlyArray<string> => [
  `\`${name}\``,
  text,
  usual
]

const table = (
  heading: ReadonlyArray<string>,
  rows: ReadonlyArray<ReadonlyArray<string>>
): string =>
  [heading, heading.map(() => "---"), ...rows]
    .map((row) => `| ${row.map(cell).join(" | ")} |`)
    .join("\n")

const settingTable = (settings: Readonly<Record<string, Setting>>): string =>
  table(
    ["setting", "what it does", "default", "what takes it back", "what the history tells"],
    Object.entries(settings).map(([name, setting]) => [
      ...inputRow(name, setting),
      removals[setting.removal],
      setting.history
    ])
  )

/** Returns docs/reference/settings.md. */
export const settingsReference = (): string =>
  [
    "# Settings",
    "",
    "Made by `npm run reference` from the tables in `src/domain/settings`. `PUT` and `PATCH` of an endpoint take these names ([openapi.json](openapi.json)); the flags of `petrel endpoint add` and `set` and of `petrel tenant set` are in [commands.md](commands.md). A change leaves what it does not name as it is.",
    "",
    "## Of an endpoint",
    "",
    settingTable(endpointSettings),
    "",
    "What may be asked for, too, and changes what is stored under another name:",
    "",
    table(
      ["input", "what it does", "default"],
      Object.entries(endpointRequests).map(([name, input]) => inputRow(name, input))
    ),
    "",
    "## Of a tenant, or of the system",
    "",
    settingTable(tenantSettings),
    ""
  ].join("\n")
