import { quoted } from "./command-line.ts"

/** Returns a path with what is asked for behind it. */
export const withQuery = (path: string, given: Readonly<Record<string, string>>): string => {
  const text = new URLSearchParams(given).toString()
  return text === "" ? path : `${path}?${text}`
}

/** Returns a request of the API as curl sends it, with a token that whoever runs it has. */
export const curlCommand = (path: string, method = "GET", body?: unknown): string =>
  [
    "curl",
    ...(method === "GET" ? [] : [`-X ${method}`]),
    '-H "Authorization: Bearer $TOKEN"',
    ...(body === undefined
      ? []
      : ["-H 'Content-Type: application/json'", `-d ${quoted(JSON.stringify(body))}`]),
    quoted(`${location.origin}${path}`)
  ].join(" ")
