/** The name of the helper image outside production: `dev/egress-image/Dockerfile` makes it. */
export const LOCAL_HELPER_IMAGE = 'agent-platform-egress-helper:1';
