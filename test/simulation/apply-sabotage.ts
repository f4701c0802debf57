import { registerHooks } from "node:module"
import { backlogTraps, mendsTakenBack, sabotages } from "./sabotages.ts"

/**
 * Changes what is loaded of the engine from now on. Throws where the sabotage does not fit the source
 * any more: it is written anew then, and not dropped.
 */
export const applySabotage = (name: string): void => {
  const all = [...sabotages, ...backlogTraps, ...mendsTakenBack]
  const sabotage = all.find((each) => each.name === name)
  if (sabotage === undefined)
    throw new Error(`no sabotage ${name}: ${all.map((each) => each.name).join(", ")}`)
  const { file, find, replace } = sabotage
  const { href } = new URL(`../../src/${file}`, import.meta.url)
  registerHooks({
    load: (url, context, next) => {
      const loaded = next(url, context)
      if (url !== href) return loaded
      const source = String(loaded.source)
      if (source.split(find).length !== 2)
        throw new Error(`the sabotage ${name} does not fit ${file} any more`)
      return { ...loaded, source: source.replace(find, () => replace) }
    }
  })
}
