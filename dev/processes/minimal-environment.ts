/** Variables that programs need to find their files and the network: no product setting, and no key. */
const PASSED_ON = [
  /^(PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_.+|TZ|TMPDIR|TEMP|TMP|TERM|XDG_.+|LD_LIBRARY_PATH)$/,
  /^(HTTPS?_PROXY|ALL_PROXY|FTP_PROXY|NO_PROXY)$/i,
  /^(NODE_EXTRA_CA_CERTS|SSL_CERT_FILE|SSL_CERT_DIR|CURL_CA_BUNDLE|REQUESTS_CA_BUNDLE)$/,
  /^(SystemRoot|SystemDrive|windir|ComSpec|PATHEXT|USERPROFILE|APPDATA|LOCALAPPDATA|ProgramFiles.*|ProgramData)$/i,
];

/**
 * Returns the environment for a program that is not part of the product: a server, a package manager, a
 * system tool.
 *
 * @param own names of further variables for this program.
 */
export function minimalEnvironment(own?: RegExp, env = process.env): NodeJS.ProcessEnv {
  const passedOn = own ? [...PASSED_ON, own] : PASSED_ON;
  return Object.fromEntries(
    Object.entries(env).filter(([name]) => passedOn.some((names) => names.test(name))),
  );
}
