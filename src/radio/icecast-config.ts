import { html as xml, type Html } from '../lib/html.js';
import { RADIO_FORMATS } from '../types/radio.js';

/** Maximum number of sources and connections; a listener beyond them is refused by Icecast. */
const MAX_SOURCES = 100;
const MAX_CONNECTIONS = 2_000;
const MAX_LISTENERS = 100;

/** A folder that no system has: Icecast serves no file. */
const NO_FOLDER = '/nonexistent';

/** An account of the machine, to which an Icecast that root has started changes. */
export interface IcecastAccount {
  readonly user: string;
  readonly group: string;
}

export interface IcecastConfig {
  readonly listen: { readonly address: string; readonly port: number };
  /** Address at which Icecast reaches the backend API. */
  readonly backendUrl: string;
  readonly adminPassword: string;
  readonly authSecret: string;
  /** Undefined unless root starts Icecast, which refuses to run as root. */
  readonly account?: IcecastAccount | undefined;
  /** Most connections; fewer make a test of a full Icecast short. */
  readonly connections?: number | undefined;
}

/** Returns `icecast.xml`, the same for every way of running Icecast for the platform. */
export function icecastConfig(config: IcecastConfig): string {
  const { account, adminPassword, connections = MAX_CONNECTIONS, listen } = config;
  // HTML and XML escape the same characters in texts and attributes.
  return xml`<icecast>
  <hostname>localhost</hostname>
  <location>none</location>
  <admin>none@localhost</admin>
  <limits>
    <clients>${connections}</clients>
    <sources>${MAX_SOURCES}</sources>
    <queue-size>${512 * 1024}</queue-size>
    <burst-size>${64 * 1024}</burst-size>
    <header-timeout>15</header-timeout>
    <source-timeout>10</source-timeout>
  </limits>
  <!-- No password of sources: the mounts below ask the platform, and any other mount is refused. -->
  <authentication>
    <admin-user>admin</admin-user>
    <admin-password>${adminPassword}</admin-password>
  </authentication>
  <listen-socket>
    <port>${listen.port}</port>
    <bind-address>${listen.address}</bind-address>
  </listen-socket>
  <http-headers>
    <header name="Content-Security-Policy" value="default-src 'none'; sandbox" />
    <header name="X-Content-Type-Options" value="nosniff" />
  </http-headers>
${RADIO_FORMATS.map((format) => mount(format, config))}  <fileserve>0</fileserve>
  <paths>
    <basedir>${NO_FOLDER}</basedir>
    <webroot>${NO_FOLDER}</webroot>
    <adminroot>${NO_FOLDER}</adminroot>
    <logdir>/dev</logdir>
  </paths>
  <!-- No access log, which would have the addresses of listeners; errors go to the standard error. -->
  <logging>
    <accesslog>null</accesslog>
    <errorlog>-</errorlog>
    <loglevel>2</loglevel>
  </logging>
  <security>
    <chroot>0</chroot>${account && changeOwner(account)}
  </security>
</icecast>
`.text;
}

const mount = (
  format: string,
  { authSecret, backendUrl }: Pick<IcecastConfig, 'authSecret' | 'backendUrl'>,
): Html => xml`  <mount type="normal">
    <mount-name>/*.${format}</mount-name>
    <authentication type="url">
      <option name="stream_auth" value="${backendUrl}/api/radio/authorize" />
      <option name="username" value="icecast" />
      <option name="password" value="${authSecret}" />
    </authentication>
    <charset>UTF-8</charset>
    <public>0</public>
    <max-listeners>${MAX_LISTENERS}</max-listeners>
  </mount>
`;

const changeOwner = ({ group, user }: IcecastAccount): Html => xml`
    <changeowner>
      <user>${user}</user>
      <group>${group}</group>
    </changeowner>`;
