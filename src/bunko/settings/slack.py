"""Declare the settings of the Slack bot."""

# No `from __future__ import annotations` here: `Setting` reads types from the real annotations.
from bunko.settings.setting import Section, setting


class SlackSection(Section):
    """How the Slack bot connects, and who may change the library through it."""

    bot_token: str = setting("", "Token of the bot, xoxb-…", "SLACK_BOT_TOKEN", secret=True)
    app_token: str = setting(
        "", "Token of the app for Socket Mode, xapp-…; not needed with --http", "SLACK_APP_TOKEN", secret=True
    )
    signing_secret: str = setting(
        "", "Signing secret of the app; only needed with --http", "SLACK_SIGNING_SECRET", secret=True
    )
    write_users: tuple[str, ...] = setting(
        (), "Ids of the users who may change the library: U012AB3CD. *: everyone. Empty: nobody, except write_channels"
    )
    write_channels: tuple[str, ...] = setting(
        (), "Ids of the channels in which everyone may change the library: C012AB3CD. Empty: none"
    )
    allowed_domains: tuple[str, ...] = setting(
        (), "Domains, with their subdomains, whose pages may be added from Slack. Empty: all public ones"
    )
    allowed_tools: tuple[str, ...] = setting(
        (),
        "Tools that the model may call in Slack although they do not say that they only read: get_weather, calendar_*. "
        "Everyone who asks can cause such a call. Empty: none",
    )
    workers: int = setting(4, "Maximum number of questions and commands that are worked on at the same time", low=1)
    keep_days: float = setting(30.0, "How long questions and answers are kept in the library, in days", low=1)
    api_url: str = setting("https://slack.com/api/", "Address of Slack's Web API; GovSlack has another one")
