/** Where the templates expect the demo site. */
export const DEMO_URL = 'http://127.0.0.1:4180/'
