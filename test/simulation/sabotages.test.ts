import { readFileSync } from "node:fs"
import { expect, test } from "vitest"
import { backlogTraps, bypassTraps, mendsTakenBack, sabotages } from "./sabotages.ts"

test("each sabotage changes exactly one place of the source", () => {
  expect(sabotages).toHaveLength(12)
  const all = [...sabotages, ...backlogTraps, ...bypassTraps, ...mendsTakenBack]
  for (const { file, find, name, replace } of all) {
    const source = readFileSync(new URL(`../../src/${file}`, import.meta.url), "utf8")
    expect(source.split(find).length - 1, name).toBe(1)
    expect(replace, name).not.toBe(find)
  }
})
