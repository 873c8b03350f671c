/** What an environment variable of a user's may be called. */
export const CREDENTIAL_NAME = /^[A-Z][A-Z0-9_]{0,63}$/;

/** Namespaces of the platform, of the runtime, and of what loads programs. */
const RESERVED_PREFIXES = [
  'OPENCLAW_',
  'PLATFORM_',
  'NODE_',
  'NPM_CONFIG_',
  'LD_',
  'XDG_',
  'BASH_',
];

/** The same, one by one. The last of them would lead the agent's AI calls, and its token, elsewhere. */
const RESERVED: ReadonlySet<string> = new Set([
  'PATH',
  'HOME',
  'HOSTNAME',
  'USER',
  'SHELL',
  'PWD',
  'IFS',
  'ENV',
  'TMPDIR',
  'OPENSSL_CONF',
  'SSLKEYLOGFILE',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
  'HTTP_PROXY',
  'HTTPS_PROXY',
  'ALL_PROXY',
  'NO_PROXY',
]);

/** Whether a variable steers the runtime or belongs to the platform, and so is not a user's to set. */
export function isReservedName(name: string): boolean {
  return RESERVED.has(name) || RESERVED_PREFIXES.some((prefix) => name.startsWith(prefix));
}
