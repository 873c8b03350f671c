import { address } from '../platform/environment/address.js';
import { area, variable, type SettingsOf } from '../platform/environment/area.js';
import { count, size, text, textMatching } from '../platform/environment/types.js';
import { webhookSecrets } from '../platform/webhooks/webhook-secrets.js';

/** The token for which `npm start` starts a stand-in for the video provider. */
export const LOCAL_TOKEN = 'local';

const modelName = textMatching(
  /^[\w.-]{1,100}\/[\w.-]{1,100}$/,
  'the name of a model, as <owner>/<name>',
);

export const videoSettings = area(
  'Videos',
  (mode) => ({
    apiUrl: variable(
      'VIDEO_API_URL',
      address(mode, 'http', 'https').prefault('https://api.replicate.com'),
      "address of the provider's API (Replicate's), without a path",
    ),
    apiToken: variable(
      'VIDEO_API_TOKEN',
      text.optional(),
      `token of the platform's account at the video provider; \`${LOCAL_TOKEN}\` makes \`npm start\` start a stand-in for it`,
      { secret: true, whenUnset: 'videos are not available' },
    ),
    model: variable('VIDEO_MODEL', modelName.optional(), 'model that makes the videos', {
      whenUnset: 'videos are not available',
    }),
    webhookSecrets: variable(
      'VIDEO_WEBHOOK_SECRET',
      webhookSecrets.optional(),
      'signing secret of the webhook at `POST /api/webhooks/video`; the old and the new one, separated by a comma, while the secret is changed',
      { secret: true, whenUnset: 'videos are checked every 30 seconds' },
    ),
    dailyTotal: variable(
      'VIDEO_DAILY_TOTAL',
      count({ least: 1, most: 1_000_000 }).prefault('200'),
      'maximum number of videos of all users per UTC day, since the operator pays for each; when it is reached, operators are notified once a day',
    ),
    mediaRoot: variable(
      'MEDIA_ROOT',
      text.optional(),
      'folder of the videos, which all API processes and workers share',
      { whenUnset: '`media` in `DATA_DIR`' },
    ),
    mediaLimit: variable(
      'MEDIA_LIMIT',
      size.prefault('20g'),
      'maximum total size of all videos; the oldest is deleted for a new one',
    ),
  }),
  undefined,
  ({ apiToken, apiUrl }, { production }) => [
    ...(new URL(apiUrl).pathname === '/' ? [] : ['VIDEO_API_URL must not have a path']),
    ...(production && apiToken === LOCAL_TOKEN
      ? [
          `VIDEO_API_TOKEN is ${LOCAL_TOKEN}, which is for development only: set the token of an account at the provider`,
        ]
      : []),
  ],
);

export type VideoSettings = SettingsOf<typeof videoSettings>;
